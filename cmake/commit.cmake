# Run at every build (add_custom_target below), and by itself: writes OUT, the commit as a C string, when it is
# another one than OUT says.
execute_process(COMMAND git rev-parse --short HEAD WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE commit
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
    set(commit unknown)
else()
    execute_process(COMMAND git diff --quiet HEAD -- src include cmake CMakeLists.txt proto
        WORKING_DIRECTORY ${SOURCE} ERROR_QUIET RESULT_VARIABLE modified)
    if(modified)
        string(APPEND commit -modified)
    endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "extern const char bench_commit[];\nconst char bench_commit[] = \"${commit}\";\n")
