/* The subset of Arduino that a sketch needs to print its results: setup, loop and Serial. An emulator has no
 * real time, so there are no delays. */
#ifndef ARDUINO_H
#define ARDUINO_H

#include <stddef.h>
#include <stdint.h>

#include "ag_console.h"
#include "ag_system.h"

extern "C" void setup(void);
extern "C" void loop(void);

class AgSerial {
  public:
    void begin(unsigned long) {
    }
    void flush() {
        ag_print_flush();
    }
    explicit operator bool() const {
        return true;
    }
    size_t write(uint8_t c) {
        const char text[2] = {static_cast<char>(c), '\0'};
        ag_print(text);
        return 1;
    }
    void print(const char *text) {
        ag_print(text);
    }
    void print(long x) {
        ag_print_i32(static_cast<int32_t>(x), 0);
    }
    void print(unsigned long x) {
        ag_print_u32(static_cast<uint32_t>(x), 0);
    }
    void print(int x) {
        print(static_cast<long>(x));
    }
    void print(unsigned x) {
        print(static_cast<unsigned long>(x));
    }
    void print(double x, int decimals = 2) {
        ag_print_f32(static_cast<float>(x), 0, decimals);
    }
    void println() {
        ag_print("\n");
    }
    template <typename T> void println(T x) {
        print(x);
        println();
    }
    void println(double x, int decimals) {
        print(x, decimals);
        println();
    }
};

extern AgSerial Serial;

#endif
