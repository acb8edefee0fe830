// Package reduce holds TFLite's reductions, running sums and normalisations along
// axes, and the lookup of embeddings.
package reduce
