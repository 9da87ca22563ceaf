# The files under assets/ as C (src/server/asset/asset.h): included, shoal_asset_sources() names the source that a build makes
# of them; run as a script, this file makes it:
#
#   cmake -DASSETS=DIR -DOUT=assets_made.c -P cmake/assets.cmake
#
# CMake itself reads and packs, so that nothing is needed beside it and crossing to another machine needs no program
# that runs here. What is made depends on the files' bytes and names only.
function(shoal_asset_sources ret)
    set(folder ${PROJECT_SOURCE_DIR}/assets)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS ${folder}/*)
    set(out ${PROJECT_BINARY_DIR}/gen/assets_made.c)
    add_custom_command(OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} -DASSETS=${folder} -DOUT=${out} -P ${PROJECT_SOURCE_DIR}/cmake/assets.cmake
        DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/assets.cmake)
    set(${ret} ${out} PARENT_SCOPE)
endfunction()

if(NOT DEFINED OUT)
    return()
endif()

# What browsers are told a file is, by its ending.
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_json "application/json")
set(type_svg "image/svg+xml")
set(type_png "image/png")
set(type_ico "image/x-icon")
set(type_txt "text/plain; charset=utf-8")

function(hex_to_c hex ret)
    string(REPEAT "." 40 line)
    string(REGEX REPLACE "(${line})" "\\1\n" bytes "${hex}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    set(${ret} "${bytes}" PARENT_SCOPE)
endfunction()

get_filename_component(made_in ${OUT} DIRECTORY)
file(MAKE_DIRECTORY ${made_in})
file(GLOB_RECURSE files RELATIVE ${ASSETS} ${ASSETS}/*)
list(SORT files)
set(arrays "")
set(rows "")
set(i 0)
foreach(name ${files})
    string(REGEX MATCH "[^.]*$" ending ${name})
    if(NOT DEFINED type_${ending})
        message(FATAL_ERROR "assets/${name}: no content type is known for '.${ending}'; cmake/assets.cmake lists them")
    endif()
    file(READ ${ASSETS}/${name} hex HEX)
    file(SHA256 ${ASSETS}/${name} digest)
    string(SUBSTRING ${digest} 0 32 etag)
    string(LENGTH "${hex}" n_hex)
    math(EXPR n "${n_hex} / 2")
    # gzip's header says when (RFC 1952, 2.3.1: MTIME in bytes 4 to 7, 0: not said); here it does not.
    file(ARCHIVE_CREATE OUTPUT ${OUT}.gz PATHS ${ASSETS}/${name} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
    file(READ ${OUT}.gz packed HEX)
    file(REMOVE ${OUT}.gz)
    string(SUBSTRING "${packed}" 0 8 magic)
    string(SUBSTRING "${packed}" 16 -1 rest)
    set(packed "${magic}00000000${rest}")
    string(LENGTH "${packed}" n_packed)
    math(EXPR n_packed "${n_packed} / 2")
    set(gzip "NULL, 0")
    hex_to_c("${hex}" bytes)
    string(APPEND arrays "/* ${name} */\nstatic const unsigned char bytes_${i}[] = {\n${bytes}0};\n")
    if(n_packed LESS n)
        hex_to_c("${packed}" bytes)
        string(APPEND arrays "static const unsigned char gzip_${i}[] = {\n${bytes}0};\n")
        set(gzip "gzip_${i}, ${n_packed}")
    endif()
    string(APPEND rows
           "    {\"${name}\", \"${type_${ending}}\", bytes_${i}, ${n}, ${gzip}, \"\\\"${etag}\\\"\"},\n")
    math(EXPR i "${i} + 1")
endforeach()
file(WRITE ${OUT} "/* Made of assets/ by cmake/assets.cmake. */
#include \"asset/asset.h\"

${arrays}
const asset ASSETS[] = {
${rows}};
const size_t N_ASSETS = sizeof ASSETS / sizeof *ASSETS;
")
