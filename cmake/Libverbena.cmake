# SPDX-License-Identifier: BSD-2-Clause
# libverbena.so.0: the SEND library, an ordinary client of whatever libibverbs.so.1 the program meets.
find_library(VRB_SYSTEM_IBVERBS NAMES libibverbs.so REQUIRED)
set(map ${CMAKE_SOURCE_DIR}/src/send/libverbena.map)
add_library(libverbena SHARED $<TARGET_OBJECTS:vrb_send> $<TARGET_OBJECTS:vrb_base>
  $<TARGET_OBJECTS:vrb_lang>)
target_link_libraries(libverbena PRIVATE ${VRB_SYSTEM_IBVERBS} ${HWLOC_LINK_LIBRARIES} pthread)
target_link_options(libverbena PRIVATE -Wl,--version-script=${map} -Wl,-z,now -Wl,-z,defs)
if(VRB_SANITIZE)
  target_link_options(libverbena PRIVATE -Wl,-z,undefs)
endif()
target_include_directories(libverbena INTERFACE ${CMAKE_SOURCE_DIR}/include)
set_target_properties(libverbena PROPERTIES OUTPUT_NAME verbena SOVERSION 0 LINK_DEPENDS ${map}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
install(TARGETS libverbena LIBRARY DESTINATION lib)
configure_file(${CMAKE_CURRENT_LIST_DIR}/verbena.pc.in ${CMAKE_BINARY_DIR}/verbena.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/verbena.pc DESTINATION lib/pkgconfig)
