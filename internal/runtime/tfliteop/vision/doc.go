// Package vision holds the operators behind vision models: selection of boxes
// (non-maximum suppression, detection post-processing), the decoder of PoseNet,
// and MediaPipe's operators on landmarks, image transforms and unpooling.
package vision
