# make install: the program, the library (shared and static) with its header and pkg-config file, the man page, the
# models and what else the shipped configuration names, the .proto files, the fault lab's scenarios, systemd's units.
include(GNUInstallDirs)
install(TARGETS libshoal ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS libshoal_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/shoal.h DESTINATION include)
install(FILES docs/shoal.1 DESTINATION share/man/man1)
install(DIRECTORY models/ DESTINATION share/shoal/models
        FILES_MATCHING PATTERN "*.gguf" PATTERN "*.json" PATTERN "*.jinja" PATTERN "NOTICE*")
install(DIRECTORY lexicons/ DESTINATION share/shoal/lexicons FILES_MATCHING PATTERN "*.yaml")
install(DIRECTORY examples/lab/ DESTINATION share/shoal/lab FILES_MATCHING PATTERN "*.yaml")
foreach(p ${SHOAL_PUBLIC_PROTOS})
    get_filename_component(dir ${p} DIRECTORY)
    install(FILES proto/${p} DESTINATION share/shoal/proto/${dir})
endforeach()
install(FILES shoal.yaml DESTINATION share/shoal OPTIONAL)
if(TARGET shoal)
    install(TARGETS shoal RUNTIME DESTINATION bin)
endif()
# The prefix is known only when installing, so what names it is written then.
install(CODE "
    set(PROJECT_VERSION ${PROJECT_VERSION})
    set(CMAKE_INSTALL_LIBDIR ${CMAKE_INSTALL_LIBDIR})
    file(REAL_PATH \"\${CMAKE_INSTALL_PREFIX}\" CMAKE_INSTALL_PREFIX)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/shoal.pc.in ${PROJECT_BINARY_DIR}/shoal.pc @ONLY)
    file(INSTALL ${PROJECT_BINARY_DIR}/shoal.pc
         DESTINATION \"\${CMAKE_INSTALL_PREFIX}/\${CMAKE_INSTALL_LIBDIR}/pkgconfig\")
    foreach(unit shoal-gateway shoal-agent)
        file(READ ${PROJECT_SOURCE_DIR}/deploy/systemd/\${unit}.service text)
        string(REPLACE \"/usr/local\" \"\${CMAKE_INSTALL_PREFIX}\" text \"\${text}\")
        file(WRITE ${PROJECT_BINARY_DIR}/systemd/\${unit}.service \"\${text}\")
        file(INSTALL ${PROJECT_BINARY_DIR}/systemd/\${unit}.service
             DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/systemd/system\")
    endforeach()
    file(INSTALL ${PROJECT_SOURCE_DIR}/deploy/systemd/shoal.sysusers RENAME shoal.conf
         DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/sysusers.d\")
    file(INSTALL ${PROJECT_SOURCE_DIR}/deploy/systemd/shoal.tmpfiles RENAME shoal.conf
         DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/tmpfiles.d\")
")
