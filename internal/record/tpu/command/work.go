package command

// Work is the work of a tensor command by the arithmetic of the vendor's reports.
type Work struct {
	// Alg are useful operations, Arch those that the machine spends with padded lanes, channels and
	// areas.
	Alg, Arch uint64
	Cycles    uint64 // of Alg at the full width, 0 for chips whose reports have no such figure
	// Startup and Conflict are the fixed cycles of the command and those of bank conflicts.
	Startup, Conflict uint64
}

// Sub-functions with arithmetic of their own.
const (
	poolDepthwise, poolAverage, poolDepthwiseRelu, poolMax        = 0, 1, 2, 4
	mmNN, mmNT, mmTT                                              = 4, 5, 6
	arDiv                                                         = 12
	transLaneCopy, transBroadcast, transStaticBC, transDistribute = 2, 3, 4, 5
	sgRect, sgLine                                                = 2, 17
	sfuTaylor4, sfuTaylor, sfuRsqrt                               = 12, 13, 17
)

// Work computes the work of a tensor command. ok is false for copies and for chips and commands
// without a formula.
func (c *Command) Work(chip *Chip) (w Work, ok bool) {
	if c.Op.Engine != TIU || c.Op.Type < 0 {
		return Work{}, false
	}
	k := &worker{c: c, chip: chip, x: chip == BM1684X, lanes: uint64(chip.Lanes)}
	result := DType(c.Get(Res0Prec))
	if k.prec = result; c.Op.Type != typeTrans && c.Op.Type != typeLin {
		k.prec = DType(c.lookup(Opd0Prec, uint64(result)))
	}
	k.eu, k.cube = uint64(chip.EU(k.prec)), uint64(chip.Cube(k.prec))
	k.n, k.ch, k.h, k.w = c.lookup(Res0N, 1), c.lookup(Res0C, 1), c.lookup(Res0H, 1), c.lookup(Res0W, 1)
	k.cUp, k.hwUp, k.wUp = up(k.ch, k.lanes), up(mul(k.h, k.w), k.eu), up(k.w, k.eu)
	switch c.Op.Type {
	case typeConv:
		w = k.conv()
	case typePool:
		w = k.pool()
	case typeMM:
		w = k.matrix()
	case typeAR:
		f := uint64(1)
		if c.Sub == arDiv {
			f = 5
		}
		w = k.areas(f, f)
		w.Startup = 11
	case typeRQDQ:
		w = k.areas(3, 3)
		w.Startup, w.Conflict = 11, 1
		if 2*c.Get(Res0Addr) == c.Get(Opd0Addr) {
			w.Conflict = 2
		}
	case typeTrans:
		w = k.trans()
	case typeSG:
		w = k.gather()
	case typeSFU:
		w = k.special()
	case typeLin:
		w = k.rows(2, k.wUp, mul(k.vector(k.prec), k.lanes, 2))
		w.Startup = 12
	case typeCmp:
		w = k.areas(2, 2)
		w.Cycles = ceilDiv(w.Alg, mul(k.vector(result), k.lanes, 2))
		w.Startup = 9
	case typeVC:
		w = k.correlate()
	case typeLAR:
		w = k.rows(1, k.wUp, 1)
		w.Cycles = 0
		if !k.x {
			w.Alg = 0
		}
	case typeTable, typeSys:
		w = Work{Alg: 1, Arch: 1}
	default:
		return Work{}, false
	}
	if k.x {
		w.Cycles = 0
	}
	return w, true
}

// worker contains the values that the formulas of one command share.
type worker struct {
	c           *Command
	chip        *Chip
	x           bool // BM1684X counts some commands in its own way
	prec        DType
	lanes       uint64
	eu, cube    uint64
	n, ch, h, w uint64
	cUp         uint64 // channels, area and row padded
	hwUp, wUp   uint64
}

// dim reads a size. Sizes that a short form leaves out are 1.
func (k *worker) dim(r Role) uint64 { return k.c.lookup(r, 1) }

// areas returns the work of elementwise commands with f operations per element.
func (k *worker) areas(f, perUnit uint64) Work {
	alg := mul(k.n, k.ch, k.h, k.w, f)
	return Work{Alg: alg, Arch: mul(k.n, k.cUp, k.hwUp, f), Cycles: ceilDiv(alg, mul(k.eu, perUnit, k.lanes))}
}

// rows returns the work of commands that pad each row.
func (k *worker) rows(f, padded, divisor uint64) Work {
	alg := mul(k.n, k.ch, k.h, k.w, f)
	return Work{Alg: alg, Arch: mul(k.n, k.cUp, k.h, padded, f), Cycles: ceilDiv(alg, divisor)}
}

// vector returns the number of values of a type that pass at once through the units with a width in
// bytes, 0 for unknown types.
func (k *worker) vector(t DType) uint64 {
	if t.bits() == 0 {
		return 0
	}
	return uint64(k.chip.VectorBytes * 8 / t.bits())
}

func less1(v uint64) uint64 { return v - min(1, v) }

func (k *worker) conv() Work {
	b := uint64(1)
	if !k.x {
		b = k.c.Get(Opd2Const)
	}
	kernel := mul(k.dim(Opd1H), k.dim(Opd1W))
	ic := k.dim(Opd0C)
	ops := func(ic uint64) uint64 { return mul(2, ic, kernel) - 1 + b }
	w := Work{Alg: mul(k.n, k.ch, k.h, k.w, ops(ic)), Startup: 23}
	area, padded := up(mul(k.h, k.w), uint64(k.chip.CubeOut)), up(ic, k.cube)
	divisor := mul(k.lanes, k.cube, 4, 2)
	switch {
	case k.x:
		area, padded = k.hwUp, up(ic, 64)
	case k.prec == FP32:
		area, padded = k.hwUp, ic
		divisor = mul(k.lanes, k.eu, 2)
	}
	w.Arch = mul(k.n, k.cUp, area, ops(padded))
	w.Cycles = ceilDiv(w.Alg, divisor)
	return w
}

func (k *worker) pool() Work {
	kernel := mul(k.dim(Opd1H), k.dim(Opd1W))
	f, unit := uint64(7), uint64(7)
	switch k.c.Sub {
	case poolDepthwise:
		f, unit = 2, 2
	case poolAverage, poolMax:
		f, unit = 2, 1
		if k.x {
			f = 1
		}
	case poolDepthwiseRelu:
		f, unit = 3, 3
	default:
		kernel = 1
	}
	w := k.areas(less1(mul(f, kernel)), 1)
	w.Cycles = ceilDiv(w.Alg, mul(k.eu, k.lanes, unit))
	w.Startup = 10
	return w
}

func (k *worker) matrix() Work {
	c := k.c
	if c.Sub >= mmNN {
		return k.matrix2()
	}
	m, inner, bias := k.dim(Opd0N), mul(k.dim(Opd0W), k.dim(Opd0C)), uint64(1)
	if k.x {
		inner = mul(k.dim(Opd0W), less1(k.dim(Opd0C))) + k.dim(Opd1W)
		if c.Sub == 1 && k.prec.bits() <= 16 {
			bias = 0
		}
		bias += c.Get(ResAdd)
	}
	if c.Get(LeftTran) == 1 {
		m, inner = inner, m
	}
	ops := less1(mul(2, inner) + bias)
	w := Work{Alg: mul(m, k.w, k.ch, ops), Arch: mul(m, k.cUp, k.wUp, ops), Startup: 32}
	w.Cycles = ceilDiv(w.Alg, mul(k.eu, k.lanes, 2))
	return w
}

func (k *worker) matrix2() Work {
	sub := k.c.Sub
	w := Work{Startup: 81}
	switch sub {
	case mmNT:
		w.Startup = 56
	case mmTT:
		w.Startup = 37
	}
	m, inner, n := k.ch, k.dim(Opd1W), k.dim(Opd1C)
	if k.x {
		if sub == mmNN {
			inner, n = n, inner
		}
		b := uint64(0)
		if k.prec.bits() == 8 {
			b = 1
		}
		ops := func(inner uint64) uint64 { return less1(mul(2, inner) + b) }
		w.Alg, w.Arch = mul(m, n, ops(inner)), mul(up(m, k.lanes), n, ops(up(inner, k.eu)))
		return w
	}
	switch sub {
	case mmNT:
		inner, n = n, inner
	case mmTT:
		m, inner, n = inner, m, inner
	}
	wide := k.cube
	if k.chip == BM1690 {
		wide = k.eu
	}
	w.Alg, w.Arch = mul(2, m, n, inner), mul(2, up(m, k.lanes), up(n, wide), up(inner, 4))
	w.Cycles = ceilDiv(w.Alg, mul(k.cube, 4, k.lanes, 2))
	return w
}

func (k *worker) trans() Work {
	sub := k.c.Sub
	switch sub {
	case transStaticBC:
		k.n, k.h = 1, 1
	case transDistribute:
		k.n, k.h, k.w = 1, 1, 1
	}
	k.hwUp, k.wUp = up(mul(k.h, k.w), k.eu), up(k.w, k.eu)
	a := k.vector(k.prec)
	var w Work
	switch sub {
	case transLaneCopy, transDistribute:
		w = k.areas(1, 1)
		w.Cycles = ceilDiv(w.Alg, a)
	case transBroadcast, transStaticBC:
		w = k.areas(1, 1)
		w.Cycles = ceilDiv(w.Alg, mul(a, k.lanes))
	default:
		w = k.rows(1, k.wUp, a)
	}
	w.Startup = [...]uint64{30, 30, 27, 27, 3, 3}[min(sub, transDistribute)]
	return w
}

func (k *worker) gather() Work {
	divisor := k.lanes
	start := uint64(11)
	switch {
	case k.c.Sub == sgRect:
		packed := k.c.Get(Opd3Addr)
		k.h = mul(packed>>16&0xFFFF, packed&0xFFFF)
	case k.c.Sub >= sgLine:
		divisor, start = mul(k.lanes, k.lanes), 24
	}
	w := k.rows(1, k.wUp, divisor)
	w.Startup = start
	return w
}

func (k *worker) special() Work {
	switch k.c.Sub {
	case sfuTaylor4, sfuTaylor:
		return k.areas(less1(mul(2, k.dim(Opd1N))), 2)
	case sfuRsqrt:
		f := uint64(30)
		if k.x {
			f = k.c.Get(Opd2NStr) + 1
		}
		w := k.areas(f, 1)
		w.Startup = 14
		return w
	}
	return k.areas(1, 1)
}

func (k *worker) correlate() Work {
	n := mul(less1(k.dim(Opd0C)), k.dim(Opd0W)) + k.dim(Opd1W)
	widest := DType(k.c.Get(Res0Prec))
	for _, r := range []Role{Opd0Prec, Opd1Prec} {
		if t := DType(k.c.lookup(r, uint64(widest))); t.bits() > widest.bits() {
			widest = t
		}
	}
	a := k.vector(widest)
	row := up(k.w, a)
	if k.x {
		row = k.wUp
	}
	return Work{Alg: mul(n, k.ch, k.w), Arch: mul(n, k.cUp, row), Cycles: ceilDiv(mul(n, k.ch, k.w), mul(a, k.lanes))}
}
