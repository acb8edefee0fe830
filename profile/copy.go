package profile

import "reflect"

// deep returns a copy of v that shares nothing with it but what is replaced, never changed: slices
// of numbers, such as samples and the columns of a timeline, and lists of tensors and options,
// which fill most of a profile with many layers.
func deep[T any](v T) T {
	detach(reflect.ValueOf(&v).Elem())
	return v
}

var tensorType, optionType = reflect.TypeFor[Tensor](), reflect.TypeFor[Option]()

// detach replaces what v shares with the value that it was copied from by copies. Most
// fields of a profile are plain or nil, which the copy of the whole has done with.
func detach(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if m, ok := metric(v); ok {
			v.Set(reflect.ValueOf(m.detached()))
		} else if !v.IsNil() {
			to := reflect.New(v.Type().Elem())
			to.Elem().Set(v.Elem())
			detach(to.Elem())
			v.Set(to)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			detach(v.Field(i))
		}
	case reflect.Slice:
		elem := v.Type().Elem()
		kind := elem.Kind()
		if v.IsNil() || kind != reflect.Struct && kind != reflect.String || elem == tensorType || elem == optionType {
			return
		}
		to := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(to, v)
		if kind == reflect.Struct {
			for i := range to.Len() {
				detach(to.Index(i))
			}
		}
		v.Set(to)
	case reflect.Map:
		if v.IsNil() {
			return
		}
		if figures, ok := v.Interface().(map[string]*Metric); ok {
			to := make(map[string]*Metric, len(figures))
			for k, m := range figures {
				to[k] = m.detached()
			}
			v.Set(reflect.ValueOf(to))
			return
		}
		to := reflect.MakeMapWithSize(v.Type(), v.Len())
		for at := v.MapRange(); at.Next(); {
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(at.Value())
			detach(e)
			to.SetMapIndex(at.Key(), e)
		}
		v.Set(to)
	}
}

// metric takes metrics out: profiles have hundreds of thousands of them.
func metric(v reflect.Value) (*Metric, bool) {
	if v.Type() != reflect.TypeFor[*Metric]() || v.IsNil() {
		return nil, false
	}
	m, ok := v.Interface().(*Metric)
	return m, ok
}

// detached is a copy that shares nothing.
func (m *Metric) detached() *Metric {
	if m == nil {
		return nil
	}
	c := *m
	for _, p := range [...]**float64{&c.Median, &c.Mean, &c.Min, &c.Max, &c.P90, &c.P95, &c.P99, &c.StdDev, &c.MAD} {
		if *p != nil {
			*p = new(**p)
		}
	}
	for _, p := range [...]**[2]float64{&c.CI95, &c.Band} {
		if *p != nil {
			*p = new(**p)
		}
	}
	for _, p := range [...]**int64{&c.N, &c.Outliers} {
		if *p != nil {
			*p = new(**p)
		}
	}
	return &c
}
