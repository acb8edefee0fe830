// Package inputuse finds out what a model does with the elements of its inputs of whole
// numbers: whether they are a shape, a length, axes, indices into something, a mask.
// Numbers drawn at random make a model fail that runs well on its own data.
//
// It starts at the operators that ask something of their inputs, goes back through
// those that pass elements on (casts, reshapes, parts of lists, sums with constants)
// and meets the model's inputs. It looks at shapes as far as a plan knows them and
// runs nothing.
package inputuse
