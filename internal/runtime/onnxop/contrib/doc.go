// Package contrib implements the layers of Microsoft's domain, which are built from the
// standard's: attention, normalisations, fused matrix multiplications and quantised operators.
package contrib
