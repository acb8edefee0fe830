package align

import (
	"fmt"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// stack makes a network of residual blocks of five layers each.
func stack(layers int, prefix string) *profile.Profile {
	g := &maker{}
	x := "in"
	for i := 0; len(g.p.Layers) < layers; i++ {
		c := int64(16 + i/50*8)
		y := g.conv(prefix+fmt.Sprint("a", i), x, c, 1)
		y = g.add("Relu", prefix+fmt.Sprint("r", i), []string{y}, []int64{1, c, 8, 8})
		y = g.conv(prefix+fmt.Sprint("b", i), y, c, 3)
		y = g.add("Add", prefix+fmt.Sprint("s", i), []string{x, y}, []int64{1, c, 8, 8})
		x = g.add("Relu", prefix+fmt.Sprint("t", i), []string{y}, []int64{1, c, 8, 8})
	}
	return g.profile()
}

// equals makes a profile of layers that are all the same and read the input.
func equals(layers int, prefix string) *profile.Profile {
	g := &maker{}
	for i := range layers {
		g.conv(prefix+fmt.Sprint(i), "in", 8, 3)
	}
	return g.profile()
}

// chain makes a network of equal convolutions in a row.
func chain(layers int, prefix string) *profile.Profile {
	g := &maker{}
	x := "in"
	for i := range layers {
		x = g.conv(prefix+fmt.Sprint(i), x, 8, 3)
	}
	return g.profile()
}

// others makes a network of as many layers as another one with other operators and sizes, so that
// nothing is equal.
func others(layers int, prefix string, seed int) *profile.Profile {
	g := &maker{}
	x := "in"
	for i := range layers {
		x = g.conv(prefix+fmt.Sprint(i), x, int64(8+i*seed%97), int64(1+2*(i*seed%3)))
	}
	return g.profile()
}

func BenchmarkLayers(b *testing.B) {
	for _, n := range []int{2000, 20_000} {
		without := func(p *profile.Profile) *profile.Profile {
			q := *p
			q.Layers = append(append([]profile.Layer{}, p.Layers[:n/2]...), p.Layers[n/2+1:]...)
			for i := range q.Layers {
				q.Layers[i].Index = int64(i)
			}
			return &q
		}
		for _, c := range []struct {
			name string
			a, b *profile.Profile
		}{
			{"renamed", stack(n, "x"), stack(n, "y")},
			{"shorter", stack(n, "x"), stack(n-n/10, "y")},
			{"cut", stack(n, "x"), without(stack(n, "y"))},
			{"parallel", equals(n, "x"), equals(n-1, "y")},
			{"chain", chain(n, "x"), chain(n-7, "y")},
			{"unlike", others(n, "x", 5), others(n, "y", 7)},
		} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for range b.N {
					Layers(c.a, c.b)
				}
			})
		}
	}
}
