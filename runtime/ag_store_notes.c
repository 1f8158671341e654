/* Notes of a board of a fleet, after records of its state; and how worn the flash is. */
#include "ag_store_records.h"

#include <string.h>

#define NOTE_MAGIC_WORD 0x4e534741u /* "AGSN" */

void ag_note_words(const ag_note *note, uint32_t words[AG_NOTE_WORDS]) {
    memcpy(words, note, sizeof *note);
    words[AG_NOTE_WORDS - 2] = NOTE_MAGIC_WORD;
    words[AG_NOTE_WORDS - 1] = ag_words_crc(words, AG_NOTE_WORDS - 1);
}

bool ag_store_note(const ag_record *record, ag_note *note) {
    uint32_t words[AG_NOTE_WORDS];
    if (record->bytes < AG_NOTE_BYTES ||
        ag_store_read(record, record->bytes - AG_NOTE_BYTES, words, AG_NOTE_BYTES) != AG_STORE_OK ||
        words[AG_NOTE_WORDS - 2] != NOTE_MAGIC_WORD ||
        words[AG_NOTE_WORDS - 1] != ag_words_crc(words, AG_NOTE_WORDS - 1)) {
        return false;
    }
    memcpy(note, words, sizeof *note);
    return true;
}

bool ag_store_newest_note(const ag_flash *flash, ag_note *note) {
    uint32_t sequence = 0, erase_count;
    for (uint32_t slot = 0; slot < flash->slots; slot++) {
        ag_scan ignored;
        ag_record_ref p;
        ag_record_cursor c = {AG_SLOT_BYTES, 0};
        memset(&ignored, 0, sizeof ignored);
        while (ag_slot_is_formatted(flash, slot, &erase_count) &&
               ag_record_next(flash, slot, &c, &p, &ignored)) {
            const ag_record record = {flash, p.address + AG_RECORD_BYTES,
                                      p.header[AG_RECORD_LENGTH] - AG_RECORD_EXTRA_BYTES};
            if (p.header[AG_RECORD_FORMAT] == AG_RECORD_FORMAT_VERSION &&
                p.header[AG_RECORD_SEQUENCE] > sequence && ag_record_is_valid(flash, &p) &&
                ag_store_note(&record, note)) {
                sequence = p.header[AG_RECORD_SEQUENCE];
            }
        }
    }
    return sequence != 0;
}

uint32_t ag_store_erased(const ag_flash *flash, uint32_t slot) {
    uint32_t erase_count;
    (void)ag_slot_is_formatted(flash, slot, &erase_count);
    return erase_count;
}

uint32_t ag_store_programmed(const ag_record *record) {
    return AG_RECORD_BYTES + record->bytes;
}
