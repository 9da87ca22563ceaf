# The library, the program, the tests and the fuzz targets, made of the modules' objects.
get_property(modules GLOBAL PROPERTY SHOAL_MODULES)

# Link `target` with the objects of the modules and of all below them.
function(shoal_link target)
    set(linked ${ARGN})
    foreach(module ${ARGN})
        get_property(below GLOBAL PROPERTY SHOAL_BELOW_${module})
        list(APPEND linked ${below})
    endforeach()
    list(REMOVE_DUPLICATES linked)
    foreach(name ${linked})
        target_link_libraries(${target} PRIVATE shoal_${name})
    endforeach()
    target_include_directories(${target} SYSTEM PRIVATE ${UTF8PROC_INCLUDE})
endfunction()

# libshoal: what include/shoal.h promises, nothing of the service. The modules' objects are linked into one,
# in which every symbol but shoal_* is made local: a program that has its own json_parse links.
get_property(library_modules GLOBAL PROPERTY SHOAL_BELOW_library)
list(REMOVE_ITEM library_modules signal)
set(library_objects)
foreach(module library ${library_modules})
    list(APPEND library_objects $<TARGET_OBJECTS:shoal_${module}>)
endforeach()
# It looks at pictures, and does not listen.
list(APPEND library_objects $<FILTER:$<TARGET_OBJECTS:shoal_signal>,INCLUDE,/image[a-z_]*\\.c\\.o$>)
set(library_object ${PROJECT_BINARY_DIR}/libshoal.o)
separate_arguments(library_flags UNIX_COMMAND "${CMAKE_C_FLAGS}") # which may name the machine: --target=
if(CMAKE_C_COMPILER_TARGET)
    list(APPEND library_flags ${CMAKE_C_COMPILE_OPTIONS_TARGET}${CMAKE_C_COMPILER_TARGET})
endif()
add_custom_command(OUTPUT ${library_object}
    COMMAND ${CMAKE_C_COMPILER} ${library_flags} -r -nostdlib -o ${library_object} ${library_objects}
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=shoal_* ${library_object}
    DEPENDS ${library_objects} COMMAND_EXPAND_LISTS VERBATIM COMMENT "Linking ${library_object}")
add_library(libshoal STATIC ${library_object})
set_source_files_properties(${library_object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
set_target_properties(libshoal PROPERTIES OUTPUT_NAME shoal LINKER_LANGUAGE C)
# The same, shared. The soname's number goes up when a program that was linked before no longer runs; the version
# script gives the symbols that number, too.
set(library_abi 0)
set(library_symbols ${PROJECT_BINARY_DIR}/libshoal.map)
file(GENERATE OUTPUT ${library_symbols} CONTENT "SHOAL_${library_abi} { global: shoal_*; local: *; };\n")
add_library(libshoal_shared SHARED ${library_object})
target_link_libraries(libshoal_shared PRIVATE PkgConfig::CRYPTO PkgConfig::JANSSON PkgConfig::PCRE2 ${UTF8PROC_LIB}
                      PkgConfig::ZLIB PkgConfig::PNG PkgConfig::JPEG Threads::Threads m)
target_link_options(libshoal_shared PRIVATE -Wl,--version-script=${library_symbols} -Wl,--as-needed)
if(NOT SHOAL_SANITIZE)
    target_link_options(libshoal_shared PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(libshoal_shared PROPERTIES OUTPUT_NAME shoal LINKER_LANGUAGE C VERSION ${library_abi}.${PROJECT_VERSION}
                      SOVERSION ${library_abi} LINK_DEPENDS ${library_symbols})
add_dependencies(libshoal_shared libshoal)

if(EXISTS ${PROJECT_SOURCE_DIR}/src/tools/cli/main.c)
    add_executable(shoal src/tools/cli/main.c)
    shoal_link(shoal cli)
endif()

# Tests and fuzz targets are some 430 links of the same objects a tree. One takes 0.34 s of a core by GNU ld, 0.05 s by lld with
# one thread and 0.11 s by lld with a thread per core; gold, which is in binutils, is between. What is installed is linked by the
# system's own.
include(CheckLinkerFlag)
foreach(linker lld gold)
    check_linker_flag(C -fuse-ld=${linker} SHOAL_HAS_${linker})
    if(SHOAL_HAS_${linker})
        set(quick_linker -fuse-ld=${linker} $<$<STREQUAL:${linker},lld>:-Wl,--threads=1>)
        break()
    endif()
endforeach()

# tests/sanitize/vectors.c says what it is. It is for kernels that call AddressSanitizer (modules.cmake).
add_library(test_base INTERFACE)
if(SHOAL_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)")
    add_library(sanitize_vectors OBJECT tests/sanitize/vectors.c)
    target_compile_options(sanitize_vectors PRIVATE -fno-sanitize=all -O2)
    target_link_libraries(test_base INTERFACE sanitize_vectors $<TARGET_OBJECTS:sanitize_vectors>)
endif()

if(CMOCKA_FOUND)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    # GGUF fixtures, made from the folders in tests/data/hf (tests/data/README.md).
    set(gguf_dir ${PROJECT_BINARY_DIR}/tests/gguf)
    set(gguf_source ${PROJECT_SOURCE_DIR}/tests/data/gguf)
    file(GLOB gguf_inputs CONFIGURE_DEPENDS ${gguf_source}/*.head ${PROJECT_SOURCE_DIR}/tests/data/hf/*/model.safetensors)
    file(STRINGS ${gguf_source}/SHA256SUMS gguf_files)
    list(TRANSFORM gguf_files REPLACE "^[0-9a-f]+ +" ${gguf_dir}/)
    add_custom_command(OUTPUT ${gguf_files} COMMAND python3 ${gguf_source}/make.py make ${gguf_dir}
        DEPENDS ${gguf_source}/make.py ${gguf_source}/SHA256SUMS ${gguf_inputs} VERBATIM COMMENT "Making GGUF fixtures")
    add_custom_target(gguf_fixtures DEPENDS ${gguf_files})
    foreach(module ${modules})
        shoal_place(at tests ${module})
        # A test's own code runs once: compiling all of it takes 90 s of a core at -O2, and 38 s at -O0. The engine's tests
        # compute what they compare with.
        get_property(area GLOBAL PROPERTY SHOAL_AREA_${module})
        set(level $<IF:$<STREQUAL:${area},engine>,-O1,-O0>)
        file(GLOB tests CONFIGURE_DEPENDS ${at}/test_*.c)
        foreach(source ${tests})
            get_filename_component(name ${source} NAME_WE)
            add_executable(${module}_${name} ${source})
            set_target_properties(${module}_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
            target_compile_definitions(${module}_${name} PRIVATE SHOAL_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                SHOAL_GGUF_DIR="${gguf_dir}")
            target_compile_options(${module}_${name} PRIVATE ${level})
            add_dependencies(${module}_${name} gguf_fixtures)
            shoal_link(${module}_${name} ${module})
            target_link_libraries(${module}_${name} PRIVATE PkgConfig::CMOCKA test_base)
            target_link_options(${module}_${name} PRIVATE ${quick_linker})
        endforeach()
    endforeach()
    target_link_libraries(signal_test_image_work PRIVATE PkgConfig::ZLIB) # it stands between libpng and zlib
    add_executable(library_bits tests/engine/library/bits.c) # for scripts/neon.sh
    set_target_properties(library_bits PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    shoal_link(library_bits library)
    target_link_options(library_bits PRIVATE ${quick_linker})
endif()

# tests/fuzz/fuzz_MODULE_NAME.c defines LLVMFuzzerTestOneInput; without libFuzzer, replay.c gives it a
# main that runs every file under tests/fuzz/seeds/fuzz_MODULE_NAME/.
if(NOT SHOAL_FUZZ)
    add_library(fuzz_replay OBJECT tests/fuzz/replay.c)
    shoal_link(fuzz_replay json)
endif()
file(GLOB fuzzers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
foreach(source ${fuzzers})
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "^fuzz_([a-z]+)_.*" "\\1" module ${name})
    add_executable(${name} ${source})
    shoal_link(${name} ${module} json) # for what replay.c makes fail
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
    target_compile_definitions(${name} PRIVATE SHOAL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    target_link_options(${name} PRIVATE ${quick_linker})
    if(SHOAL_FUZZ)
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    else()
        target_link_libraries(${name} PRIVATE fuzz_replay)
    endif()
endforeach()

# tests/fail: a library to preload that lets a chosen allocation or write fail, and the program that sweeps over
# them; one that lets workers die of certain requests; and one that holds threads in system calls. Built plainly: under a sanitizer the first stands in front
# of the sanitizer's own allocator.
if(NOT SHOAL_SANITIZE)
    add_library(fail_interpose SHARED tests/fail/interpose.c)
    add_library(fail_deadly SHARED tests/fail/deadly.c)
    add_library(fail_hold SHARED tests/fail/hold.c)
    add_executable(fail_sweep tests/fail/sweep.c)
    target_link_libraries(fail_interpose PRIVATE ${CMAKE_DL_LIBS})
    target_link_libraries(fail_deadly PRIVATE ${CMAKE_DL_LIBS})
    target_link_libraries(fail_hold PRIVATE ${CMAKE_DL_LIBS})
    set_target_properties(fail_interpose fail_deadly fail_hold fail_sweep PROPERTIES LIBRARY_OUTPUT_DIRECTORY
                          ${PROJECT_BINARY_DIR}/fail RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fail)
endif()
