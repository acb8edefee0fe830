// Package runlog holds one run of a model as another program measured it: layers, times over
// inferences ([Tally]), timeline lanes ([Lanes]), quantities that opmeter does not know
// ([Quantities]) and counts of skipped entries ([Dropped]).
//
// A [Run] is a source like any other. Importers, external engines and devices build it, so that
// none of them imports another.
package runlog
