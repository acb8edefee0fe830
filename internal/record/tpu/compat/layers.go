package compat

import "sort"

// joinLayers gives each command the object that owns its number, on its core and in its
// subnet.
func (p *perfAI) joinLayers() {
	for k := range p.cores {
		var tiu, dma []*Place
		for i := range p.in.Places {
			if p.in.Places[i].Core == k && p.in.Places[i].Subnet == p.in.Subnet {
				tiu = append(tiu, &p.in.Places[i])
				dma = append(dma, &p.in.Places[i])
			}
		}
		c := &p.cores[k]
		own(c.tiu, tiu, 0)
		own(c.gdma, dma, 1)
		own(c.sdma, dma, 1)
	}
}

// own looks up the objects of commands by their number; e is the side of the pairs.
func own(list []instr, places []*Place, e int) {
	kept := places[:0:0]
	for _, p := range places {
		if p.Before[e] < p.After[e] {
			kept = append(kept, p)
		}
	}
	sort.SliceStable(kept, func(i, j int) bool { return kept[i].Before[e] < kept[j].Before[e] })
	for i := range list {
		x := &list[i]
		at := sort.Search(len(kept), func(i int) bool { return kept[i].Before[e] >= x.id }) - 1
		if at >= 0 && kept[at].After[e] >= x.id {
			x.layer = kept[at]
		}
	}
}
