// Package study makes the figures of the shipped targets from published
// measurements: it reads their tables, fits cores, runtimes and their versions,
// carries figures to where nothing was measured, and says how well they hold by
// leaving out sources, networks, cores or models.
//
// Everything is deterministic: the same tables give the same files. No part of the
// program imports it; package main beside writes the files.
package study
