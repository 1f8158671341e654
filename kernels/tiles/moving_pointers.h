/* For files whose loops move their pointers on by what one instruction loads or stores. Where vec.h defines
 * AG_MOVING_POINTERS as 1, gcc must not replace them by an index: its instructions cannot add one, and
 * gcc 12 copies the pointers in each iteration. */
#ifndef AG_TILES_MOVING_POINTERS_H
#define AG_TILES_MOVING_POINTERS_H

#include "vec.h"

#if AG_MOVING_POINTERS && defined __GNUC__ && !defined __clang__
#pragma GCC optimize("no-ivopts")
#endif

#endif
