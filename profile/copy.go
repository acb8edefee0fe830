package profile

import "reflect"

// deep returns a copy of v that shares nothing with it but slices of numbers: samples
// and the columns of a timeline, which are long and are replaced, never changed.
func deep[T any](v T) T {
	out := reflect.New(reflect.TypeFor[T]()).Elem()
	copyInto(out, reflect.ValueOf(&v).Elem())
	return out.Interface().(T)
}

func copyInto(to, from reflect.Value) {
	switch from.Kind() {
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			copyInto(to.Elem(), from.Elem())
		}
	case reflect.Struct:
		for i := range from.NumField() {
			copyInto(to.Field(i), from.Field(i))
		}
	case reflect.Slice:
		switch from.Type().Elem().Kind() {
		case reflect.Struct, reflect.String:
			if !from.IsNil() {
				to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
			}
			for i := range from.Len() {
				copyInto(to.Index(i), from.Index(i))
			}
		default:
			to.Set(from)
		}
	case reflect.Map:
		if from.IsNil() {
			return
		}
		to.Set(reflect.MakeMapWithSize(from.Type(), from.Len()))
		for at := from.MapRange(); at.Next(); {
			v := reflect.New(from.Type().Elem()).Elem()
			copyInto(v, at.Value())
			to.SetMapIndex(at.Key(), v)
		}
	default:
		to.Set(from)
	}
}
