package profile

import "reflect"

// deep returns a copy of v that shares nothing with it but slices of numbers: samples
// and the columns of a timeline, which are long and are replaced, never changed.
func deep[T any](v T) T {
	detach(reflect.ValueOf(&v).Elem())
	return v
}

// detach replaces what v shares with the value that it was copied from by copies. Most
// fields of a profile are plain or nil, which the copy of the whole has done with.
func detach(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
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
		kind := v.Type().Elem().Kind()
		if v.IsNil() || kind != reflect.Struct && kind != reflect.String {
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
