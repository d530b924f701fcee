/*
 * Reads the lines of a file by hand: blocks of SIZE bytes and memchr(3); an incomplete line at the
 * end of a block is moved to the front. `raw_lines FILE [SIZE]` prints the number of lines, the sum
 * of their lengths, and the sum of their first bytes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: raw_lines FILE [SIZE]\n");
        return 2;
    }
    const size_t size = argc == 3 ? strtoul(argv[2], NULL, 10) : 65536;
    const int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    char* const buffer = malloc(size);
    if (fd < 0 || buffer == NULL) {
        perror(argv[1]);
        return 1;
    }
    unsigned long lines = 0, bytes = 0, first = 0;
    size_t used = 0;
    for (;;) {
        const ssize_t n = read(fd, buffer + used, size - used);
        if (n < 0 || (n == 0 && used == size)) {
            perror("read");
            return 1;
        }
        used += (size_t)n;
        char* begin = buffer;
        char* const end = buffer + used;
        for (char* at; (at = memchr(begin, '\n', (size_t)(end - begin))) != NULL; begin = at + 1) {
            const size_t length = (size_t)(at - begin) - (at > begin && at[-1] == '\r' ? 1 : 0);
            ++lines;
            bytes += length;
            first += length > 0 ? (unsigned char)*begin : 0;
        }
        used = (size_t)(end - begin);
        if (n == 0) {
            if (used > 0) {
                ++lines;
                bytes += used;
                first += (unsigned char)*begin;
            }
            break;
        }
        memmove(buffer, begin, used);
    }
    printf("%lu %lu %lu\n", lines, bytes, first);
    return 0;
}
