// Package contrib holds the layers of Microsoft's domain, which are made of the
// standard's: attention, normalisations, fused products and operators on codes.
package contrib
