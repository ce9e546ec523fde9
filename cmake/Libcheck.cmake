# SPDX-License-Identifier: BSD-2-Clause
# libverbena-check.so: stands in front of whatever libibverbs.so.1 the program meets (preload). Its thread-local word must
# not be allocated, since it is looked at in free().
target_compile_options(vrb_check PRIVATE -ftls-model=initial-exec)
add_library(check SHARED $<TARGET_OBJECTS:vrb_check> $<TARGET_OBJECTS:vrb_rules> $<TARGET_OBJECTS:vrb_base>
  $<TARGET_OBJECTS:vrb_lang>)
target_link_libraries(check PRIVATE pthread ${CMAKE_DL_LIBS})
target_link_options(check PRIVATE -Wl,-z,nodelete -static-libgcc -Wl,--exclude-libs,ALL)
set_target_properties(check PROPERTIES OUTPUT_NAME verbena-check
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/verbena)
install(TARGETS check LIBRARY DESTINATION lib/verbena)
