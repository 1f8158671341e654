/* CMSIS-DSP's header, without warnings about it: to gcc, what a system header includes is the system's. */
#ifndef CMSIS_DSP_H
#define CMSIS_DSP_H

#if defined(__GNUC__)
#pragma GCC system_header
#endif
#include "arm_math.h"

#endif
