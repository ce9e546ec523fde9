# SPDX-License-Identifier: BSD-2-Clause
# The translations (po/LANGUAGE.po, made by scripts/words) become share/locale, beside bin and lib in the build tree as well
# as when installed.
find_program(VRB_MSGFMT msgfmt REQUIRED)
file(GLOB translations CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/po/*.po)
set(catalogs)
foreach(po ${translations})
  get_filename_component(language ${po} NAME_WE)
  set(folder share/locale/${language}/LC_MESSAGES)
  set(mo ${CMAKE_BINARY_DIR}/${folder}/verbena.mo)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/${folder})
  add_custom_command(OUTPUT ${mo} DEPENDS ${po} VERBATIM
    COMMAND ${VRB_MSGFMT} --check --endianness=little --no-hash -o ${mo} ${po})
  list(APPEND catalogs ${mo})
  install(FILES ${mo} DESTINATION ${folder})
endforeach()
add_custom_target(words ALL DEPENDS ${catalogs})
