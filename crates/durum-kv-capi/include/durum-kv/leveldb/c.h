/* In place of LevelDB's own: the same functions, by libdurum_kv. */
#include "../../durum_kv.h"
