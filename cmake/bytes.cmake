# A file's bytes as C: cmake -D FROM=FILE -D TO=FILE.c -D NAME=NAME -P bytes.cmake
file(READ ${FROM} hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR n "${digits} / 2")
string(REGEX REPLACE "(..)" "0x\\1," list "${hex}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" list "${list}")
file(WRITE ${TO} "#include <stddef.h>\n#include <stdint.h>\n
extern const uint8_t ${NAME}[];\nextern const size_t ${NAME}_BYTES;
const uint8_t ${NAME}[] = {\n${list}\n};\nconst size_t ${NAME}_BYTES = ${n};\n")
