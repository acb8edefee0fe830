package conv

import (
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
)

// tilesNHWC multiplies packed patches by the packed weights of output channels o0 to o1 and
// writes the results from position p0.
func (c *Float32) tilesNHWC(buf, w, y []float32, g, p0, np, o0, o1 int) {
	var acc [8]float32
	k, oc := c.k, c.s.OC
	for o := o0; o < o1; o += gemm.ColsPanel {
		pw := w[o*k : (o+gemm.ColsPanel)*k]
		n := min(gemm.ColsPanel, o1-o)
		var b [gemm.ColsPanel]float32
		if c.bias != nil {
			copy(b[:n], c.bias[g*c.og+o:])
		}
		for i := 0; i < np; i += gemm.RowsPanel {
			gemm.Micro(k, buf[i*k:(i+gemm.RowsPanel)*k], pw, &acc)
			at := (p0+i)*oc + g*c.og + o
			if n == gemm.ColsPanel && np-i >= gemm.RowsPanel {
				*(*[4]float32)(y[at:]) = [4]float32{acc[0] + b[0], acc[1] + b[1], acc[2] + b[2], acc[3] + b[3]}
				*(*[4]float32)(y[at+oc:]) = [4]float32{acc[4] + b[0], acc[5] + b[1], acc[6] + b[2], acc[7] + b[3]}
				continue
			}
			for r := range min(gemm.RowsPanel, np-i) {
				row := y[at+r*oc:][:n]
				for j := range row {
					row[j] = acc[r*gemm.ColsPanel+j] + b[j]
				}
			}
		}
	}
}

// clampNHWC applies the activation to n channels from channel o of all positions in y.
func (c *Float32) clampNHWC(y []float32, o, n int) {
	if !c.act.On {
		return
	}
	if n == c.s.OC {
		element.Bound(y, c.act.Min, c.act.Max)
		return
	}
	for ; len(y) > 0; y = y[c.s.OC:] {
		element.Bound(y[o:][:n], c.act.Min, c.act.Max)
	}
}

// tilesNCHW is tilesNHWC for planes.
func (c *Float32) tilesNCHW(buf, w, y []float32, g, p0, np, o0, o1 int) {
	var acc [8]float32
	k, area := c.k, c.s.OH*c.s.OW
	for i := 0; i < np; i += gemm.ColsPanel {
		pb := buf[i*k : (i+gemm.ColsPanel)*k]
		n := min(gemm.ColsPanel, np-i)
		for o := o0; o < o1; o += gemm.RowsPanel {
			gemm.Micro(k, w[o*k:(o+gemm.RowsPanel)*k], pb, &acc)
			var b [gemm.RowsPanel]float32
			rows := min(gemm.RowsPanel, o1-o)
			if c.bias != nil {
				copy(b[:rows], c.bias[g*c.og+o:])
			}
			at := o*area + p0 + i
			if n == gemm.ColsPanel && rows == gemm.RowsPanel {
				*(*[4]float32)(y[at:]) = [4]float32{acc[0] + b[0], acc[1] + b[0], acc[2] + b[0], acc[3] + b[0]}
				*(*[4]float32)(y[at+area:]) = [4]float32{acc[4] + b[1], acc[5] + b[1], acc[6] + b[1], acc[7] + b[1]}
				continue
			}
			for r := range rows {
				row := y[at+r*area:][:n]
				for j := range row {
					row[j] = acc[r*gemm.ColsPanel+j] + b[r]
				}
			}
		}
	}
}
