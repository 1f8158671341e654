/* Places a variable without initial value in a region of the board's RAM, by the name of the region in the
 * board's file:
 *
 *     static mnist_in_ccm ccm AG_REGION(ccm);
 *
 * The build defines AG_RAM_<region> as the number of a section of boards/support/common/firmware.ld. Where it
 * does not, on the host or in a project with another linker script, the section has another name that
 * begins with .bss, which linker scripts place in the main RAM. */
#ifndef AG_REGION_H
#define AG_REGION_H

#define AG_REGION_TEXT(x) #x
#define AG_REGION_SECTION(number) AG_REGION_TEXT(.bss.ram##number)
#define AG_REGION_OF(number) __attribute__((section(AG_REGION_SECTION(number))))
#define AG_REGION(region) AG_REGION_OF(AG_RAM_##region)

#endif
