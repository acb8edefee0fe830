// Package sparsify has the arithmetic and the files of Neural Magic's tools: Sparsify's analysis
// of a model, its profiles, its rule for a sparsity per layer and what it makes of both; recipes
// of SparseML; SparseZoo's analysis of weights; lists of layers to leave out, as NNCF and Neural
// Compressor have them.
//
// What Sparsify gets wrong is done as it does it, so that figures can be compared, and said where
// it is done. Nothing here decides for opmeter's own plans; package choose does.
//
// Formulas and field names follow Sparsify 0.12, SparseML 0.12 and SparseZoo 1.5.
package sparsify
