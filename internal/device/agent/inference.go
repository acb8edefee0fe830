package agent

// frame handles the next frame.
func (s *Stream) frame(f *Frame) error {
	r := body{b: f.Body}
	switch f.Type {
	case THello:
		return s.greet(f.Body)
	case TInfo:
		key, text := r.octet(), r.text()
		if !r.bad {
			s.Info[key] = text
		}
	case TTag:
		index, text := r.number(1<<16-1), r.text()
		if !r.bad {
			s.Tags[uint16(index)] = text
		}
	case TBegin:
		n := r.number(1<<32 - 1)
		if !r.bad {
			s.begin(n)
		}
	case TOp:
		return s.op(f.Body)
	case TEnd:
		return s.end(f.Body)
	case TCounter:
		return s.counter(f.Body)
	case TMemory:
		m := Memory{r.text(), uint32(r.number(1<<32 - 1))}
		if !r.bad {
			s.out(Event{Memory: &m})
		}
	case TText:
		return s.say(f.Body)
	case TData:
		return s.block(f.Body)
	case TDone:
		s.close(true)
		s.out(Event{Done: true})
	case TProblem:
		p := Problem{r.octet(), r.number(1<<64 - 1)}
		if !r.bad {
			s.problem(p)
		}
	default:
		s.Lost.Foreign++
	}
	return r.err()
}

// greet handles a hello.
func (s *Stream) greet(b []byte) error {
	h, v, err := parseHello(b)
	if err != nil {
		return err
	}
	if v != version {
		s.out(Event{Version: v})
		return nil
	}
	s.close(true) // hellos stand between inferences
	if s.hello != nil {
		old, now := *s.hello, h
		old.Flags |= flagRepeat
		now.Flags |= flagRepeat
		old.Inferences, now.Inferences = 0, 0
		if old != now {
			s.away() // another device, or another start of it
			s.began = true
		}
	}
	s.hello, s.sure = &h, true
	s.out(Event{Hello: &h})
	return nil
}

// begin handles the begin of an inference.
func (s *Stream) begin(n uint64) {
	s.close(true)
	if int64(n) <= s.last {
		s.away() // numbers only grow: this is another start
		s.began = true
	}
	if s.last >= 0 || s.hello != nil && s.hello.Flags&flagRepeat == 0 {
		s.Lost.Runs += int64(n) - s.last - 1
		if s.orphan && s.Lost.Runs > 0 {
			s.Lost.Runs--
		}
	}
	s.last, s.orphan = int64(n), false
	s.open(n, true)
}

// op handles the end of an operator.
func (s *Stream) op(b []byte) error {
	o, err := parseOp(b)
	if err != nil || o.depth > maxDepth {
		return errBody
	}
	if s.run == nil {
		s.open(uint64(s.last+1), false)
	}
	in := s.inner[o.depth+1]
	if o.calls == 0 && in != (inner{}) {
		return errBody // nothing stood in it, and something did
	}
	s.inner[o.depth+1] = inner{}
	around := &s.inner[o.depth]
	around.counts += int64(o.counts)
	around.ops++
	around.calls += int64(o.calls) + 2
	if s.run.Partial && o.calls > 0 {
		return nil // its time in nested operators may be lost
	}
	own := int64(o.counts) - in.counts
	agent := int64(o.calls) - in.calls
	if own < 0 || agent < 0 || around.counts < 0 || around.calls < 0 {
		s.run.Partial = true
		return nil
	}
	k, ok := s.run.at[o.index]
	if !ok {
		k = len(s.run.Ops)
		s.run.at[o.index] = k
		s.run.Ops = append(s.run.Ops, Op{Index: o.index, stretch: s.run.stretch})
	}
	x := &s.run.Ops[k]
	x.mixed = x.mixed || x.stretch != s.run.stretch
	x.Calls++
	x.Counts += own
	x.Inner += in.ops
	x.Agent += agent + 2*in.ops
	x.Within = x.Within || o.depth > 0
	if x.Counts < 0 {
		s.run.Wrong = true // more than 292 years: no device measured that
	}
	return nil
}

// end handles the end of an inference.
func (s *Stream) end(b []byte) error {
	e, err := parseEnd(b)
	if err != nil {
		return err
	}
	if s.run == nil {
		if int64(e.number) <= s.last {
			return nil // its begin was a problem, and it is told of
		}
		s.open(e.number, false)
	}
	s.last, s.orphan = int64(e.number), false
	r := s.run
	if r.begun && r.Number != e.number {
		r.Partial = true
	}
	r.Number = e.number
	calls := 0
	for i := range r.Ops {
		calls += r.Ops[i].Calls
	}
	if uint64(calls) != e.ops {
		r.Partial = true
	}
	r.Counts, r.Own, r.Calls = e.counts, e.own, e.calls
	s.close(false)
	return nil
}

// counter handles a custom counter.
func (s *Stream) counter(b []byte) error {
	c, err := parseCounter(b)
	if err != nil {
		return err
	}
	if s.run == nil {
		return nil // between inferences it belongs to none
	}
	if !s.names[c.name] {
		if len(s.names) >= maxCounters {
			s.Lost.Counters++
			return nil
		}
		s.names[c.name] = true
	}
	k := counterKey{c.index, c.name}
	if i, ok := s.run.counterAt[k]; ok {
		s.run.Counters[i].Value += float64(c.value)
		return nil
	}
	if len(s.run.Counters) >= maxFigures {
		s.Lost.Counters++
		return nil
	}
	s.run.counterAt[k] = len(s.run.Counters)
	s.run.Counters = append(s.run.Counters, Counter{c.index, c.name, float64(c.value)})
	return nil
}

// say handles a piece of a remark.
func (s *Stream) say(b []byte) error {
	r := body{b: b}
	more, piece := r.octet(), r.bytes()
	if r.bad {
		return errBody
	}
	if len(s.remark) < maxText {
		s.remark = append(s.remark, piece...)
	}
	if more == 0 {
		text := clean(s.remark)
		s.remark = nil
		s.out(Event{Text: text})
	}
	return nil
}

// block handles a piece of data.
func (s *Stream) block(b []byte) error {
	d, err := parseData(b)
	if err != nil {
		return err
	}
	if d.at == 0 {
		s.drop()
		if d.size > maxData {
			s.Lost.Data++
			return nil
		}
		s.data, s.want = &Data{Name: d.name, Index: d.index}, d.size
	}
	x := s.data
	if x == nil {
		return nil // its beginning was lost
	}
	if x.Name != d.name || x.Index != d.index || uint64(len(x.Bytes)) != d.at || s.want != d.size {
		s.drop()
		return nil
	}
	x.Bytes = append(x.Bytes, d.piece...)
	if uint64(len(x.Bytes)) == s.want {
		s.data = nil
		s.out(Event{Data: x})
	} else if len(d.piece) == 0 {
		s.drop()
	}
	return nil
}

// problem handles a report of incorrect use.
func (s *Stream) problem(p Problem) {
	if s.run != nil {
		switch p.Code {
		case problemNest, problemOutside:
		default:
			s.run.Wrong = true
		}
	}
	s.out(Event{Problem: &p})
}
