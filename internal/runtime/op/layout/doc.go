// Package layout is what operators that move, select and count elements share,
// whatever format they come from: tensors as the slices of internal/kernel/move,
// the widening of packed types, index tensors, and updates of selected blocks.
//
// It knows tensors and calls. Attributes, the rules for shapes and what an
// operator is called stay with the formats' packages.
package layout
