// Package sample makes up profiles for tests and benchmarks of reports; the
// program does not use it. [New] gives one that holds one of everything: lanes of
// several cores, nested bars, stalls, transfers, counters, dependencies, memories,
// layers that were folded, fused or refused, and names that try to break what
// shows them. [Large] gives a chain of many layers and iterations, [Versions]
// profiles to compare, [Random] whatever a profile may hold.
package sample
