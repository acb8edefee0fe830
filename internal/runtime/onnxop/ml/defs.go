package ml

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of the ai.onnx.ml domain.
func Defs() []op.Def {
	def := func(name string, infer func(*op.Call) error, p func(*op.Call) (op.Run, error)) op.Def {
		return op.Def{Domain: graph.ONNXML, Name: name, Since: 1, Types: numeric, Infer: op.Needs(1, infer), Prepare: p}
	}
	of := func(d op.Def, types ...tensor.Type) op.Def { d.Types = types; return d }
	return []op.Def{
		def("TreeEnsembleClassifier", inferClassifier, prepareTreeClassifier),
		def("TreeEnsembleRegressor", inferTreeRegressor, prepareTreeRegressor),
		of(def("TreeEnsemble", inferTreeRegressor, prepareTreeEnsemble), tensor.Float32, tensor.Float64, tensor.Float16),
		def("LinearClassifier", inferLinearClassifier, prepareLinearClassifier),
		def("LinearRegressor", inferLinearRegressor, prepareLinearRegressor),
		def("SVMClassifier", inferSVMClassifier, prepareSVMClassifier),
		def("SVMRegressor", inferSVMRegressor, prepareSVMRegressor),
		def("Normalizer", inferFloat, prepareNormalizer),
		def("Scaler", inferFloat, prepareScaler),
		def("Binarizer", elem.Same, prepareBinarizer),
		def("Imputer", elem.Same, prepareImputer),
		{Domain: graph.ONNXML, Name: "FeatureVectorizer", Since: 1, Types: numeric, Infer: inferVectorizer, Prepare: op.Simple(runVectorizer)},
		of(def("ArrayFeatureExtractor", op.Needs(2, inferExtractor), prepareExtractor), append(numeric, tensor.String)...),
		of(def("LabelEncoder", op.Infer(newLabelEncoder), prepareLabelEncoder)),
		of(def("CategoryMapper", inferCategoryMapper, prepareCategoryMapper), tensor.String, tensor.Int64),
		of(def("OneHotEncoder", inferOneHot, prepareOneHot), append(numeric, tensor.String)...),
		of(def("ZipMap", inferZipMap, prepareZipMap), tensor.Float32),
		of(def("DictVectorizer", inferDict, op.Simple(runDictVectorizer)), tensor.Map),
		of(def("CastMap", inferDict, op.Simple(runCastMap)), tensor.Map),
	}
}
