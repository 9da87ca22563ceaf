# make install: the program, the library with its header and pkg-config file, the man page, the models, the fault lab's scenarios.
install(TARGETS libshoal ARCHIVE DESTINATION lib)
install(FILES include/shoal.h DESTINATION include)
install(FILES docs/shoal.1 DESTINATION share/man/man1)
install(DIRECTORY models/ DESTINATION share/shoal/models FILES_MATCHING PATTERN "*.gguf" PATTERN "*.json" PATTERN "NOTICE*")
install(DIRECTORY lexicons/ DESTINATION share/shoal/lexicons FILES_MATCHING PATTERN "*.yaml")
install(DIRECTORY examples/lab/ DESTINATION share/shoal/lab FILES_MATCHING PATTERN "*.yaml")
install(FILES shoal.yaml DESTINATION share/shoal OPTIONAL)
if(TARGET shoal)
    install(TARGETS shoal RUNTIME DESTINATION bin)
endif()
# The prefix is known only when installing, so the file is written then.
install(CODE "
    set(PROJECT_VERSION ${PROJECT_VERSION})
    file(REAL_PATH \"\${CMAKE_INSTALL_PREFIX}\" CMAKE_INSTALL_PREFIX)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/shoal.pc.in ${PROJECT_BINARY_DIR}/shoal.pc @ONLY)
    file(INSTALL ${PROJECT_BINARY_DIR}/shoal.pc DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/pkgconfig\")
")
