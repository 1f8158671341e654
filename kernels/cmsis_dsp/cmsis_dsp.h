/* CMSIS-DSP's header without its warnings: gcc treats everything that a system header includes as a system
 * header. */
#ifndef CMSIS_DSP_H
#define CMSIS_DSP_H

#if defined(__GNUC__)
#pragma GCC system_header
#endif
#include "arm_math.h"

#endif
