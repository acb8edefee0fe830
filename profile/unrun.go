package profile

// Unrun lists the layers of an inference that did not run, and reports whether they
// are most of its work, so that times of the rest say nothing about the model.
//
// Most is more than half of the multiply-accumulates where the layers that did not run
// have a count of them and the model has any, and more than half of the layers
// otherwise. Layers that follow from constants alone and those of branches that were
// not taken are not work of the inference.
func (p *Profile) Unrun() (layers []int64, most bool) {
	var all, idle, allMACs, idleMACs float64
	counted := true
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.Constant || l.State == NotReached {
			continue
		}
		var macs float64
		if l.MACs != nil {
			macs = float64(*l.MACs)
		}
		all, allMACs = all+1, allMACs+macs
		if !l.State.Idle() {
			continue
		}
		layers = append(layers, int64(i))
		idle, idleMACs = idle+1, idleMACs+macs
		counted = counted && l.MACs != nil
	}
	if counted && allMACs > 0 {
		return layers, idleMACs > allMACs/2
	}
	return layers, idle > all/2
}

// Starved lists the layers that failed because memory ran out: a latency without them is not
// that of the model.
func (p *Profile) Starved() (layers []int64) {
	for i := range p.Layers {
		if l := &p.Layers[i]; l.State == Failed && l.Cause != nil && l.Cause.Code == ByMemory && !l.Constant {
			layers = append(layers, int64(i))
		}
	}
	return layers
}

// withhold takes the figures of time and energy of the whole model away where most of
// its work did not run, or a part of it had no memory: they must not be quoted. Those of
// layers stay.
func (p *Profile) withhold() {
	layers, most := p.Unrun()
	why := Missing{Cause: ByWork, Layers: layers}
	if !most {
		if layers = p.Starved(); layers == nil {
			return
		}
		why = Missing{Cause: ByMemory, Layers: layers, Text: "the model has no latency"}
	}
	t := &p.Totals
	t.Latency, t.CPUCycles, t.AcceleratorCycles, t.SimulatorCycles, t.Energy, t.LatencySamples = nil, nil, nil, nil, nil, nil
	p.Reconcile, p.Trust = nil, nil
	// Further figures of the whole: times at other speeds, processor time, energy.
	for key := range t.Figures {
		if q, ok := Lookup(key); ok && (q.Unit == "s" || q.Unit == "J" || q.Unit == "cycles") {
			delete(t.Figures, key)
		}
	}
	p.Incomplete = append(p.Incomplete, why)
}
