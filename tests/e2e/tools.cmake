# SPDX-License-Identifier: BSD-2-Clause
# The `verbena` binary, the sysfs view and an installed tree; the long form of the demo test is
# soak.
foreach(name check cli demo perf preload install ucx words)
  add_test(NAME e2e_tools_${name}
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/tools_${name}.sh ${CMAKE_BINARY_DIR})
  set_tests_properties(e2e_tools_${name} PROPERTIES LABELS e2e SKIP_RETURN_CODE 77 TIMEOUT 600
    RUN_SERIAL ON)
endforeach()
add_test(NAME soak_tools_demo
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/tools_demo.sh ${CMAKE_BINARY_DIR} 25)
set_tests_properties(soak_tools_demo PROPERTIES LABELS soak SKIP_RETURN_CODE 77 TIMEOUT 1200
  RUN_SERIAL ON)
add_test(NAME e2e_capture
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/capture --build ${CMAKE_BINARY_DIR})
set_tests_properties(e2e_capture PROPERTIES LABELS e2e SKIP_RETURN_CODE 77 TIMEOUT 900
  RUN_SERIAL ON)
add_test(NAME e2e_trace
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/trace --build ${CMAKE_BINARY_DIR})
set_tests_properties(e2e_trace PROPERTIES LABELS e2e SKIP_RETURN_CODE 77 TIMEOUT 900
  RUN_SERIAL ON)
add_test(NAME e2e_stat
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/stat --build ${CMAKE_BINARY_DIR})
set_tests_properties(e2e_stat PROPERTIES LABELS e2e SKIP_RETURN_CODE 77 TIMEOUT 900
  RUN_SERIAL ON)
add_test(NAME soak_tools_check
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/tools_check.sh ${CMAKE_BINARY_DIR} all)
set_tests_properties(soak_tools_check PROPERTIES LABELS soak SKIP_RETURN_CODE 77 TIMEOUT 1200
  RUN_SERIAL ON)
add_test(NAME e2e_top COMMAND ${CMAKE_CURRENT_LIST_DIR}/top --build ${CMAKE_BINARY_DIR})
set_tests_properties(e2e_top PROPERTIES LABELS e2e SKIP_RETURN_CODE 77 TIMEOUT 600)
