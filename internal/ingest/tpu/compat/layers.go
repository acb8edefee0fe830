package compat

// joinLayers gives each command the object that owns its number, on its core.
func (p *perfAI) joinLayers() {
	for k := range p.cores {
		var owner [2]map[int]*Place
		owner[0], owner[1] = map[int]*Place{}, map[int]*Place{}
		for i := range p.in.Places {
			pl := &p.in.Places[i]
			if pl.Core != k {
				continue
			}
			for e := range owner {
				for id := pl.Before[e] + 1; id <= pl.After[e]; id++ {
					owner[e][id] = pl
				}
			}
		}
		c := &p.cores[k]
		for i := range c.tiu {
			c.tiu[i].layer = owner[0][c.tiu[i].id]
		}
		for _, list := range [][]instr{c.gdma, c.sdma} {
			for i := range list {
				list[i].layer = owner[1][list[i].id]
			}
		}
	}
}
