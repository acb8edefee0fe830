package kernel

import "github.com/opmeter/opmeter/internal/kernel/element"

// tilesNHWC multiplies packed patches by the packed weights of output channels o0 to o1 and
// writes the results from position p0.
func (c *Conv) tilesNHWC(buf, w, y []float32, g, p0, np, o0, o1 int) {
	var acc [8]float32
	k, oc := c.k, c.s.OC
	for o := o0; o < o1; o += colsPanel {
		pw := w[o*k : (o+colsPanel)*k]
		n := min(colsPanel, o1-o)
		var b [colsPanel]float32
		if c.bias != nil {
			copy(b[:n], c.bias[g*c.og+o:])
		}
		for i := 0; i < np; i += rowsPanel {
			micro(k, buf[i*k:(i+rowsPanel)*k], pw, &acc)
			at := (p0+i)*oc + g*c.og + o
			if n == colsPanel && np-i >= rowsPanel {
				*(*[4]float32)(y[at:]) = [4]float32{acc[0] + b[0], acc[1] + b[1], acc[2] + b[2], acc[3] + b[3]}
				*(*[4]float32)(y[at+oc:]) = [4]float32{acc[4] + b[0], acc[5] + b[1], acc[6] + b[2], acc[7] + b[3]}
				continue
			}
			for r := range min(rowsPanel, np-i) {
				row := y[at+r*oc:][:n]
				for j := range row {
					row[j] = acc[r*colsPanel+j] + b[j]
				}
			}
		}
	}
}

// clampNHWC applies the activation to n channels from channel o of all positions in y.
func (c *Conv) clampNHWC(y []float32, o, n int) {
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
func (c *Conv) tilesNCHW(buf, w, y []float32, g, p0, np, o0, o1 int) {
	var acc [8]float32
	k, area := c.k, c.s.OH*c.s.OW
	for i := 0; i < np; i += colsPanel {
		pb := buf[i*k : (i+colsPanel)*k]
		n := min(colsPanel, np-i)
		for o := o0; o < o1; o += rowsPanel {
			micro(k, w[o*k:(o+rowsPanel)*k], pb, &acc)
			var b [rowsPanel]float32
			rows := min(rowsPanel, o1-o)
			if c.bias != nil {
				copy(b[:rows], c.bias[g*c.og+o:])
			}
			at := o*area + p0 + i
			if n == colsPanel && rows == rowsPanel {
				*(*[4]float32)(y[at:]) = [4]float32{acc[0] + b[0], acc[1] + b[0], acc[2] + b[0], acc[3] + b[0]}
				*(*[4]float32)(y[at+area:]) = [4]float32{acc[4] + b[1], acc[5] + b[1], acc[6] + b[1], acc[7] + b[1]}
				continue
			}
			for r := range rows {
				row := y[at+r*area:][:n]
				for j := range row {
					row[j] = acc[r*colsPanel+j] + b[r]
				}
			}
		}
	}
}
