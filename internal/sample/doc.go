// Package sample makes up profiles of any size that hold one of everything:
// lanes of several cores, nested bars, stalls, transfers, counters, dependencies,
// memories, layers that were folded, fused or refused, and names that try to break
// what shows them. Tests and benchmarks of reports use it; the program does not.
package sample
