// Package layout implements operators that move, select and count elements, shared by all
// formats: tensors as slices for internal/kernel/move, unpacking of sub-byte types, index
// tensors, and scatter updates.
//
// It works on tensors and calls. Attributes, shape rules and operator names belong to the
// packages of the formats.
package layout
