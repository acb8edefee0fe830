// Package sparsify implements the arithmetic and file formats of Neural Magic's tools: Sparsify's
// analysis of a model, its profiles, its allocation of sparsities to layers and its estimates;
// recipes of SparseML; and exclusion lists of NNCF and Neural Compressor.
//
// Defects of Sparsify are reproduced, so that figures can be compared, and documented where they
// occur. Nothing here decides opmeter's own plans; package choose does.
//
// Formulas and field names follow Sparsify 0.12 and SparseML 0.12.
package sparsify
