/* Fusions: which neighbouring operations could run as one, and the bytes that would save. */
#ifndef EXTRACT_OPS_FUSE_H
#define EXTRACT_OPS_FUSE_H

struct catalog;

/* Finds the candidates in the catalog's works, marks the set that saves most without overlap, and fills
 * catalog->fusions. */
void fuse_all(struct catalog *c);

#endif
