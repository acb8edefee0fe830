// Package inputuse determines what a model uses its integer inputs for: as a shape, a length,
// axes, indices, or a mask. Random integers make a model fail that runs well on its own data.
//
// It starts at the operators that require something of their inputs, goes back through operators
// that pass elements on (casts, reshapes, slices, sums with constants) and ends at the model's
// inputs. It uses shapes as far as a plan knows them and runs nothing.
package inputuse
