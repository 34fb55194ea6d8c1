module @dynamic_rows {
  func.func public @main(%x: tensor<1024x8xf32>, %n: tensor<i32>) -> tensor<?x8xf32, #stablehlo.bounds<1024, ?>> {
    %d = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<1024x8xf32>, tensor<i32>) -> tensor<?x8xf32, #stablehlo.bounds<1024, ?>>
    %t = stablehlo.tanh %d : tensor<?x8xf32, #stablehlo.bounds<1024, ?>>
    return %t : tensor<?x8xf32, #stablehlo.bounds<1024, ?>>
  }
}