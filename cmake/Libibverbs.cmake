# SPDX-License-Identifier: BSD-2-Clause
# libibverbs.so.1: the verbs face with all layers below it, under rdma-core's symbol versions.
target_compile_definitions(vrb_verbs PRIVATE VRB_VERSION="${PROJECT_VERSION}")
set(map ${CMAKE_SOURCE_DIR}/src/verbs/libibverbs.map)
if(EXISTS ${map})
  add_library(ibverbs SHARED)
  foreach(layer base lang wire rules core link hca verbs)
    target_sources(ibverbs PRIVATE $<TARGET_OBJECTS:vrb_${layer}>)
    get_property(libs TARGET vrb_${layer} PROPERTY VRB_LIBS)
    target_link_libraries(ibverbs PRIVATE ${libs})
  endforeach()
  target_link_libraries(ibverbs PRIVATE pthread)
  target_link_options(ibverbs PRIVATE -Wl,--version-script=${map} -Wl,-z,now -Wl,-z,nodelete)
  set_target_properties(ibverbs PROPERTIES OUTPUT_NAME ibverbs SOVERSION 1 LINK_DEPENDS ${map}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/verbena)
  install(TARGETS ibverbs LIBRARY DESTINATION lib/verbena NAMELINK_SKIP)
endif()
