// Package sensiml reads what SensiML Knowledge Packs that were built for profiling print on their
// serial port: the cycles of each feature generator and of the classifier, classes and segments.
//
// [ReadPack] reads a model.json (or the export of a knowledge pack) and lays out the slots of the
// firmware's arrays: which generator's figure stands where. [Reader] makes messages of a stream of
// bytes whatever its line ends, junk and cut lines, and counts what it has to leave out by reason.
// [ProfileParser] does the whole job: it opens a port, reads a number of inferences and gives
// figures for every generator and sensor.
//
// ProfileParser has the job, the constructor's arguments and the results of the class of the same
// name in the vendor's Python SDK. With [Options.Compat] its results are those of that class to the
// last byte, mistakes included; without, they are right:
//
//   - The line with times, which is not valid JSON, is read.
//   - A figure belongs to the generator whose slot it stands in, for each generator and its sensor
//     columns; the class takes the first slots for the distinct names.
//   - A generator whose slot is beyond the array was not reported. It has no figure, and not zero.
//   - Runs are inferences with figures, not lines.
//   - Seconds are cycles by the clock that is given; the firmware's own seconds assume 81.92 MHz on
//     every chip.
//   - On x86 the "cycles" are nanoseconds, and a measurement over the end of a second is repaired.
//
// The lines have no checksum. A digit that was damaged on the way leaves a line that looks right:
// figures that contradict the line with times, and few that lie far outside the others, are left
// out of the statistics, counted and reported ([Stats].Left, findings).
package sensiml
