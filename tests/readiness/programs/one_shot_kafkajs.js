// Writes three records and reads them in a group, with any release of kafkajs.
const { Kafka, logLevel } = require('kafkajs')

const records = 3
const [bootstrap, topic, name] = process.argv.slice(2)

async function main() {
  const kafka = new Kafka({ brokers: bootstrap.split(','), clientId: name, logLevel: logLevel.ERROR })
  const producer = kafka.producer()
  await producer.connect()
  for (let number = 0; number < records; number++) {
    await producer.send({ topic, messages: [{ value: String(number) }] })
  }
  await producer.disconnect()
  const consumer = kafka.consumer({ groupId: name })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  let read = 0
  await new Promise((resolve, reject) => {
    const eachMessage = async () => {
      read += 1
      if (read === records) resolve()
    }
    consumer.on(consumer.events.CRASH, (event) => reject(event.payload.error))
    consumer.run({ eachMessage }).catch(reject)
  })
  await consumer.disconnect()
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error)
    process.exit(1)
  }
)
