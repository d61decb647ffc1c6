# Writes a header with a hash of the plugins.
set(hashes "")
foreach(plugin ${PLUGINS})
    file(SHA256 ${plugin} hash)
    string(APPEND hashes ${hash})
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUTPUT} "#define PLUGINS_IDENTITY \"${hash}\"\n")
