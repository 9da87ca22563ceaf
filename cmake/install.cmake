# make install: the program, the library (shared and static) with its header and pkg-config file, the man page, the
# models and what else the shipped configuration names, the .proto files, the fault lab's scenarios, systemd's units
# with a drop-in that is not in use.
include(GNUInstallDirs)
install(TARGETS libshoal ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS libshoal_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/shoal.h DESTINATION include)
install(DIRECTORY models/ DESTINATION share/shoal/models
        FILES_MATCHING PATTERN "*.gguf" PATTERN "*.json" PATTERN "*.jinja" PATTERN "NOTICE*")
install(DIRECTORY lexicons/ DESTINATION share/shoal/lexicons FILES_MATCHING PATTERN "*.yaml")
install(DIRECTORY examples/lab/ DESTINATION share/shoal/lab FILES_MATCHING PATTERN "*.yaml")
foreach(p ${SHOAL_PUBLIC_PROTOS})
    get_filename_component(dir ${p} DIRECTORY)
    install(FILES proto/${p} DESTINATION share/shoal/proto/${dir})
endforeach()
install(FILES shoal.yaml DESTINATION share/shoal OPTIONAL)
# README.md, and all that it links to, in its place beside it.
foreach(folder docs bench/runs examples lexicons)
    install(DIRECTORY ${folder}/ DESTINATION share/doc/shoal/${folder} OPTIONAL
            FILES_MATCHING PATTERN "*.md" PATTERN "*.png" PATTERN "*.svg" PATTERN "*.1" PATTERN "*.yaml" PATTERN "*.c")
endforeach()
install(FILES README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md LICENSE shoal.yaml DESTINATION share/doc/shoal OPTIONAL)
install(FILES bench/README.md DESTINATION share/doc/shoal/bench OPTIONAL)
install(FILES models/NOTICE DESTINATION share/doc/shoal/models OPTIONAL)
install(FILES include/shoal.h DESTINATION share/doc/shoal/include)
if(TARGET shoal)
    install(TARGETS shoal RUNTIME DESTINATION bin)
    install(CODE "set(shoal \"${CMAKE_CROSSCOMPILING_EMULATOR};$<TARGET_FILE:shoal>\")")
endif()
# What the program says of itself: the manual page's options, a page for each command, and what shells offer behind the tab key. A program that
# cannot run here (cross builds) leaves the page without its options, and has no others.
install(CODE "
    file(READ ${PROJECT_SOURCE_DIR}/docs/shoal.1 page)
    function(said ret verb)
        set(code 1)
        if(shoal)
            execute_process(COMMAND \${shoal} completions \${verb} \${ARGN} OUTPUT_VARIABLE text RESULT_VARIABLE code ERROR_QUIET)
        endif()
        if(NOT code EQUAL 0)
            set(text \"\")
        endif()
        set(\${ret} \"\${text}\" PARENT_SCOPE)
    endfunction()
    function(installed where name text)
        if(NOT text STREQUAL \"\")
            file(WRITE \"${PROJECT_BINARY_DIR}/installed/\${name}\" \"\${text}\")
            file(INSTALL \"${PROJECT_BINARY_DIR}/installed/\${name}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/share/\${where}\")
        endif()
    endfunction()
    said(options manual)
    string(REPLACE \".SH ENVIRONMENT\" \"\${options}.SH ENVIRONMENT\" page \"\${page}\")
    installed(man/man1 shoal.1 \"\${page}\")
    string(REGEX MATCHALL \"SS shoal [^\n]+\" commands \"\${options}\")
    foreach(command \${commands}) # fill\\-mask, as troff has it
        string(REGEX REPLACE \"SS shoal |[^a-z0-9-]\" \"\" command \"\${command}\")
        said(page manual \${command})
        installed(man/man1 shoal-\${command}.1 \"\${page}\")
    endforeach()
    said(bash bash)
    installed(bash-completion/completions shoal \"\${bash}\")
    said(zsh zsh)
    installed(zsh/site-functions _shoal \"\${zsh}\")
    said(fish fish)
    installed(fish/vendor_completions.d shoal.fish \"\${fish}\")
")
# The prefix is known only when installing, so what names it is written then.
install(CODE "
    set(PROJECT_VERSION ${PROJECT_VERSION})
    set(CMAKE_INSTALL_LIBDIR ${CMAKE_INSTALL_LIBDIR})
    file(REAL_PATH \"\${CMAKE_INSTALL_PREFIX}\" CMAKE_INSTALL_PREFIX)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/shoal.pc.in ${PROJECT_BINARY_DIR}/shoal.pc @ONLY)
    file(INSTALL ${PROJECT_BINARY_DIR}/shoal.pc
         DESTINATION \"\${CMAKE_INSTALL_PREFIX}/\${CMAKE_INSTALL_LIBDIR}/pkgconfig\")
    foreach(unit shoal-gateway shoal-agent shoal-eval)
        file(READ ${PROJECT_SOURCE_DIR}/deploy/systemd/\${unit}.service text)
        string(REPLACE \"/usr/local\" \"\${CMAKE_INSTALL_PREFIX}\" text \"\${text}\")
        file(WRITE ${PROJECT_BINARY_DIR}/systemd/\${unit}.service \"\${text}\")
        file(INSTALL ${PROJECT_BINARY_DIR}/systemd/\${unit}.service
             DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/systemd/system\")
    endforeach()
    file(INSTALL ${PROJECT_SOURCE_DIR}/deploy/systemd/shoal-eval.timer
         DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/systemd/system\")
    file(READ ${PROJECT_SOURCE_DIR}/deploy/systemd/shoal-priority.conf text)
    string(REPLACE \"/usr/local\" \"\${CMAKE_INSTALL_PREFIX}\" text \"\${text}\")
    file(WRITE ${PROJECT_BINARY_DIR}/systemd/shoal-priority.conf \"\${text}\")
    file(INSTALL ${PROJECT_BINARY_DIR}/systemd/shoal-priority.conf
         DESTINATION \"\${CMAKE_INSTALL_PREFIX}/share/shoal/systemd\")
    file(INSTALL ${PROJECT_SOURCE_DIR}/deploy/systemd/shoal.sysusers RENAME shoal.conf
         DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/sysusers.d\")
    file(INSTALL ${PROJECT_SOURCE_DIR}/deploy/systemd/shoal.tmpfiles RENAME shoal.conf
         DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/tmpfiles.d\")
")
