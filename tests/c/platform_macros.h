/* Macros that headers of platforms define, each group after its source: to include before the headers of a
 * program. */
#ifndef PLATFORM_MACROS_H
#define PLATFORM_MACROS_H

#include <complex.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef M_PI
#define M_PI 3.14159265358979323846 /* <math.h> of newlib and glibc, where POSIX's names are visible */
#endif
#ifndef signgam
#define signgam (*__signgam()) /* <math.h> of newlib */
#endif

/* <ctype.h> of newlib */
#define _U 01
#define _L 02
#define _C 040
#define _B 0200

/* Arduino.h of ArduinoCore-avr and ArduinoCore-API */
#define HIGH 0x1
#define LOW 0x0
#define INPUT 0x0
#define OUTPUT 0x1
#define INPUT_PULLUP 0x2
#define PI 3.1415926535897932384626433832795
#define HALF_PI 1.5707963267948966192313216916398
#define TWO_PI 6.283185307179586476925286766559
#define DEG_TO_RAD 0.017453292519943295769236907684886
#define EULER 2.718281828459045235360287471352
#define SERIAL 0x0
#define DISPLAY 0x1
#define LSBFIRST 0
#define CHANGE 1
#define FALLING 2
#define DEFAULT 1
#define EXTERNAL 0
#define INTERNAL 3
#define F(string_literal) (string_literal)
#define _BV(bit) (1 << (bit))
#define bit(b) (1UL << (b))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#undef abs
#define abs(x) ((x) > 0 ? (x) : -(x))
#define constrain(amt, low, high) ((amt) < (low) ? (low) : ((amt) > (high) ? (high) : (amt)))
#undef round
#define round(x) ((x) >= 0 ? (long)((x) + 0.5) : (long)((x) - 0.5))
#define radians(deg) ((deg) * DEG_TO_RAD)
#define degrees(rad) ((rad) * 57.295779513082320876798154814105)
#define sq(x) ((x) * (x))
#define word(...) makeWord(__VA_ARGS__)
#define interrupts() sei()
#define noInterrupts() cli()
#define lowByte(w) ((unsigned char)((w) & 0xff))
#define bitRead(value, bit) (((value) >> (bit)) & 0x01)

/* binary.h and the pins of a variant; the ports of SAMD, mbed and ESP32 */
#define B0 0
#define B1 1
#define B00 0
#define B11111111 255
#define A0 14
#define D0 0
#define PA0 192
#define SS 10
#define SDA 18
#define LED_BUILTIN 13
#define Serial Serial0
#define Serial1 _UART1_

/* CMSIS: stm32f407xx.h, core_cm4.h; stm32f4xx_hal_gpio.h */
#define GPIOA ((void *)0x40020000)
#define FLASH ((void *)0x40023C00)
#define RNG ((void *)0x50060800)
#define DMA1 ((void *)0x40026000)
#define TIM2 ((void *)0x40000000)
#define SCB ((void *)0xE000ED00)
#define ITM ((void *)0xE0000000)
#define GPIO_PIN_0 ((unsigned short)0x0001)
#define CLEAR_BIT(REG, BIT) ((REG) &= ~(BIT))

/* ESP-IDF: esp_bit_defs.h, soc.h; Zephyr: sys/util.h */
#define BIT0 0x00000001
#define BIT(n) (1UL << (n))
#define REG_WRITE(r, v) (*(volatile unsigned *)(r) = (v))
#define IRAM_ATTR
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* Short names that macros on the command line of a board have: ARDUINO_ARCH_X, CPU frequency, versions */
#define E 2.718281828459045
#define K 1024
#define X 0
#define Y 1
#define W 2
#define N 3

#endif
