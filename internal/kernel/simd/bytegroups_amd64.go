package simd

var byteGroupsVNNI = [groupKinds][]func(t *GroupTile){
	{groupOne1VNNI, groupOne2VNNI, groupOne3VNNI, groupOne4VNNI, groupOne5VNNI, groupOne6VNNI, groupOne7VNNI, groupOne8VNNI, groupOne9VNNI, groupOne10VNNI, groupOne11VNNI, groupOne12VNNI},
	{groupTwo1VNNI, groupTwo2VNNI, groupTwo3VNNI, groupTwo4VNNI, groupTwo5VNNI, groupTwo6VNNI, groupTwo7VNNI, groupTwo8VNNI, groupTwo9VNNI, groupTwo10VNNI, groupTwo11VNNI, groupTwo12VNNI},
	{groupFours1VNNI, groupFours2VNNI, groupFours3VNNI, groupFours4VNNI, groupFours5VNNI, groupFours6VNNI, groupFours7VNNI, groupFours8VNNI, groupFours9VNNI, groupFours10VNNI, groupFours11VNNI, groupFours12VNNI},
	{groupEights1VNNI, groupEights2VNNI, groupEights3VNNI, groupEights4VNNI, groupEights5VNNI, groupEights6VNNI, groupEights7VNNI, groupEights8VNNI, groupEights9VNNI, groupEights10VNNI, groupEights11VNNI, groupEights12VNNI},
}

//go:noescape
func groupOne1VNNI(t *GroupTile)

//go:noescape
func groupOne2VNNI(t *GroupTile)

//go:noescape
func groupOne3VNNI(t *GroupTile)

//go:noescape
func groupOne4VNNI(t *GroupTile)

//go:noescape
func groupOne5VNNI(t *GroupTile)

//go:noescape
func groupOne6VNNI(t *GroupTile)

//go:noescape
func groupOne7VNNI(t *GroupTile)

//go:noescape
func groupOne8VNNI(t *GroupTile)

//go:noescape
func groupOne9VNNI(t *GroupTile)

//go:noescape
func groupOne10VNNI(t *GroupTile)

//go:noescape
func groupOne11VNNI(t *GroupTile)

//go:noescape
func groupOne12VNNI(t *GroupTile)

//go:noescape
func groupTwo1VNNI(t *GroupTile)

//go:noescape
func groupTwo2VNNI(t *GroupTile)

//go:noescape
func groupTwo3VNNI(t *GroupTile)

//go:noescape
func groupTwo4VNNI(t *GroupTile)

//go:noescape
func groupTwo5VNNI(t *GroupTile)

//go:noescape
func groupTwo6VNNI(t *GroupTile)

//go:noescape
func groupTwo7VNNI(t *GroupTile)

//go:noescape
func groupTwo8VNNI(t *GroupTile)

//go:noescape
func groupTwo9VNNI(t *GroupTile)

//go:noescape
func groupTwo10VNNI(t *GroupTile)

//go:noescape
func groupTwo11VNNI(t *GroupTile)

//go:noescape
func groupTwo12VNNI(t *GroupTile)

//go:noescape
func groupFours1VNNI(t *GroupTile)

//go:noescape
func groupFours2VNNI(t *GroupTile)

//go:noescape
func groupFours3VNNI(t *GroupTile)

//go:noescape
func groupFours4VNNI(t *GroupTile)

//go:noescape
func groupFours5VNNI(t *GroupTile)

//go:noescape
func groupFours6VNNI(t *GroupTile)

//go:noescape
func groupFours7VNNI(t *GroupTile)

//go:noescape
func groupFours8VNNI(t *GroupTile)

//go:noescape
func groupFours9VNNI(t *GroupTile)

//go:noescape
func groupFours10VNNI(t *GroupTile)

//go:noescape
func groupFours11VNNI(t *GroupTile)

//go:noescape
func groupFours12VNNI(t *GroupTile)

//go:noescape
func groupEights1VNNI(t *GroupTile)

//go:noescape
func groupEights2VNNI(t *GroupTile)

//go:noescape
func groupEights3VNNI(t *GroupTile)

//go:noescape
func groupEights4VNNI(t *GroupTile)

//go:noescape
func groupEights5VNNI(t *GroupTile)

//go:noescape
func groupEights6VNNI(t *GroupTile)

//go:noescape
func groupEights7VNNI(t *GroupTile)

//go:noescape
func groupEights8VNNI(t *GroupTile)

//go:noescape
func groupEights9VNNI(t *GroupTile)

//go:noescape
func groupEights10VNNI(t *GroupTile)

//go:noescape
func groupEights11VNNI(t *GroupTile)

//go:noescape
func groupEights12VNNI(t *GroupTile)
