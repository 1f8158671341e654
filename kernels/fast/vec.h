/* For scalar cores: vectors of one float, which the compiler keeps in a register. */
#ifndef AG_FAST_VEC_H
#define AG_FAST_VEC_H

#include "tiles/helpers.h"

#define AG_MOVING_POINTERS 1

#include "tiles/floats.h"
#include "tiles/moves.h"
#include "tiles/runs.h"
#include "tiles/factors.h"
#include "tiles/tile_rows.h"
#include "tiles/packing.h"
#include "tiles/to_floats.h"

#endif
