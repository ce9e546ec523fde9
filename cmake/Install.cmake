# SPDX-License-Identifier: BSD-2-Clause
# What an installed tree holds beside the programs and libraries that install themselves. Nothing in
# it names the prefix, so that it can be moved.
configure_file(${CMAKE_CURRENT_LIST_DIR}/verbena-hca.pc.in ${CMAKE_BINARY_DIR}/verbena-hca.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/verbena-hca.pc DESTINATION lib/pkgconfig)
install(DIRECTORY include/verbena DESTINATION include FILES_MATCHING PATTERN "*.h")
install(DIRECTORY docs/man/ DESTINATION share/man/man1 FILES_MATCHING PATTERN "*.1")
install(DIRECTORY docs/man/ DESTINATION share/man/man3 FILES_MATCHING PATTERN "*.3")
install(DIRECTORY docs/man/ DESTINATION share/man/man7 FILES_MATCHING PATTERN "*.7")
install(DIRECTORY examples/ DESTINATION share/verbena/examples FILES_MATCHING PATTERN "*.c" PATTERN Makefile)
install(FILES LICENSE DESTINATION share/doc/verbena)
