/* STM32F405 family: 168 MHz from the internal oscillator and the PLL, and USART1 on PA9 (transmit) and PA10,
 * 8N1. Register addresses and bits: ST RM0090 rev 19, chapters 3 (flash), 6 (RCC), 8 (GPIO), 30
 * (USART).
 *
 * Crystals differ from board to board, so none is used. Every wait is bounded, and flash wait states are set
 * only once the PLL is locked: in QEMU the RCC reads 0, and the chip stays at its initial 16 MHz. */
#include "ag_machine.h"

#include "ag_core.h"

#include <stdbool.h>

#define RCC_CR AG_REGISTER(0x40023800u)
#define RCC_PLLCFGR AG_REGISTER(0x40023804u)
#define RCC_CFGR AG_REGISTER(0x40023808u)
#define RCC_AHB1ENR AG_REGISTER(0x40023830u)
#define RCC_APB1ENR AG_REGISTER(0x40023840u)
#define RCC_APB2ENR AG_REGISTER(0x40023844u)
#define PWR_CR AG_REGISTER(0x40007000u)
#define FLASH_ACR AG_REGISTER(0x40023c00u)
#define GPIOA_MODER AG_REGISTER(0x40020000u)
#define GPIOA_OSPEEDR AG_REGISTER(0x40020008u)
#define GPIOA_AFRH AG_REGISTER(0x40020024u)
#define USART1_SR AG_REGISTER(0x40011000u)
#define USART1_DR AG_REGISTER(0x40011004u)
#define USART1_BRR AG_REGISTER(0x40011008u)
#define USART1_CR1 AG_REGISTER(0x4001100cu)

enum { WAIT = 100000 }; /* iterations of a polling loop: over 10 ms at 16 MHz; the PLL locks within 300 us */

static bool wait_for(volatile const uint32_t *address, uint32_t mask, uint32_t value) {
    for (int32_t i = 0; i < WAIT; i++) {
        if ((*address & mask) == value) {
            return true;
        }
    }
    return false;
}

/* 16 MHz / 16 * 336 / 2 = 168 MHz; USB and random number generator 48 MHz. Returns the APB2 clock, which
 * drives USART1. */
static uint32_t start_clock(void) {
    const uint32_t hsi = 16000000u;
    RCC_APB1ENR |= 1u << 28; /* PWR */
    (void)RCC_APB1ENR;
    PWR_CR |= 1u << 14; /* regulator scale 1, required for 168 MHz */
    RCC_PLLCFGR = 7u << 24 | 0u << 22 /* HSI */ | 0u << 16 /* P = 2 */ | 336u << 6 | 16u;
    RCC_CR |= 1u << 24; /* PLL on */
    if (!wait_for(&RCC_CR, 1u << 25, 1u << 25)) {
        return hsi;
    }
    FLASH_ACR = 7u << 8 /* caches, prefetch */ | 5u /* wait states at 168 MHz and 3.3 V */;
    if (!wait_for(&FLASH_ACR, 15u, 5u)) {
        return hsi;
    }
    RCC_CFGR = 4u << 13 /* APB2 = 84 MHz */ | 5u << 10 /* APB1 = 42 MHz */;
    RCC_CFGR |= 2u; /* select the PLL */
    if (!wait_for(&RCC_CFGR, 12u, 8u)) {
        RCC_CFGR = 0;
        return hsi;
    }
    return 84000000u;
}

void ag_machine_init(void) {
    const uint32_t clock = start_clock();
    RCC_AHB1ENR |= 1u;      /* GPIOA */
    RCC_APB2ENR |= 1u << 4; /* USART1 */
    (void)RCC_APB2ENR;
    GPIOA_AFRH = (GPIOA_AFRH & ~0xff0u) | 0x770u;              /* PA9, PA10: function 7 */
    GPIOA_MODER = (GPIOA_MODER & ~(15u << 18)) | 10u << 18;    /* alternate function */
    GPIOA_OSPEEDR = (GPIOA_OSPEEDR & ~(15u << 18)) | 5u << 18; /* medium speed */
    USART1_BRR = (clock + AG_UART_BAUD / 2u) / AG_UART_BAUD;
    USART1_CR1 = 1u << 13 | 1u << 3 | 1u << 2; /* on, transmit, receive */
}

void ag_machine_put(char c) {
    (void)wait_for(&USART1_SR, 1u << 7, 1u << 7); /* transmit register empty */
    USART1_DR = (uint8_t)c;
}

void ag_machine_listen(void) {
    USART1_CR1 |= 1u << 5; /* interrupt at every byte */
    AG_NVIC_ENABLE(37u);   /* USART1 */
}

void ag_machine_interrupt(void) {
    const uint32_t status = USART1_SR;
    if (status & (1u << 5 | 1u << 3)) { /* a byte, or an overrun; reading it clears both */
        const uint8_t byte = (uint8_t)USART1_DR;
        if (status & 1u << 3) {
            ag_uart_overran();
        }
        if (status & 1u << 5) {
            ag_uart_received(byte);
        }
    }
}
